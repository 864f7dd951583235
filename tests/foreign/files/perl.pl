use threads; use threads::shared; use Thread::Queue;
my $q = Thread::Queue->new; my $sum :shared = 0;
my @t = map { threads->create(sub { while (defined(my $x = $q->dequeue)) { lock($sum); $sum += $x } }) } 1..4;
$q->enqueue($_) for 1..20000; $q->end; $_->join for @t; print "$sum\n";
