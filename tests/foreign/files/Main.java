import java.util.concurrent.*; import java.util.concurrent.atomic.*;
public class Main { public static void main(String[] a) throws Exception {
  var map = new ConcurrentHashMap<Integer, Integer>(); var pool = Executors.newFixedThreadPool(4); var done = new CountDownLatch(4); var sum = new AtomicLong();
  for (int t = 0; t < 4; ++t) pool.execute(() -> { for (int i = 0; i < 50000; ++i) { map.merge(i % 997, 1, Integer::sum); synchronized (sum) { sum.addAndGet(i); } } done.countDown(); });
  done.await(); pool.shutdown();
  System.out.println(map.values().stream().mapToInt(x -> x).sum() + " " + sum + " " + java.util.stream.IntStream.range(0, 100000).parallel().filter(x -> x % 7 == 0).count());
} }
