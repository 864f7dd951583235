package main
// #include <pthread.h>
// static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; static long n;
// static void add(void) { pthread_mutex_lock(&m); ++n; pthread_mutex_unlock(&m); }
// static long total(void) { return n; }
import "C"
import ("fmt"; "sync")
func main() { var w sync.WaitGroup; var m sync.Mutex; s := 0; c := make(chan int, 8)
  for i := 0; i < 4; i++ { w.Add(1); go func() { defer w.Done(); for x := range c { m.Lock(); s += x; m.Unlock(); C.add() } }() }
  for i := 0; i < 20000; i++ { c <- i }; close(c); w.Wait(); fmt.Println(s, C.total()) }
