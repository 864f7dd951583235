#ifndef UNMARKED_WRITER_H
#define UNMARKED_WRITER_H
void scribble(long* value);
void scribble_through_libc(void* to, const void* from, unsigned long size_bytes);
#endif
