q = Queue.new; sum = 0; m = Mutex.new; c = ConditionVariable.new
t = 4.times.map { Thread.new { while (x = q.pop) != :end; m.synchronize { sum += x; c.signal } end } }
20000.times { |i| q << i }; 4.times { q << :end }; t.each(&:join); puts sum
puts 3.times.map { |i| Ractor.new(i) { |n| (1..50000).sum * n } }.map(&:take).sum
