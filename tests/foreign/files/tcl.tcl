package require Thread
set m [thread::mutex create]; tsv::set s sum 0
for {set i 0} {$i < 4} {incr i} { lappend t [thread::create -joinable "
  for {set k 0} {\$k < 5000} {incr k} { thread::mutex lock $m; tsv::incr s sum \$k; thread::mutex unlock $m }"] }
foreach x $t { thread::join $x }
puts [tsv::get s sum]
