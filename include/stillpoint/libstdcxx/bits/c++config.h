/* Stands before libstdc++'s own header of this name where `stillpoint c++` compiles: std::string and std::wstring are made from their
 * templates in each program, as libstdc++ does it itself with -D_GLIBCXX_ASSERTIONS, and so get hooks. Those in libstdc++.so have none, and
 * write blocks of an operator new that may be durable. */
#ifndef STILLPOINT_LIBSTDCXX_CONFIG_H
#define STILLPOINT_LIBSTDCXX_CONFIG_H

#include_next <bits/c++config.h>

#if _GLIBCXX_EXTERN_TEMPLATE > 0
#undef _GLIBCXX_EXTERN_TEMPLATE
#define _GLIBCXX_EXTERN_TEMPLATE -1
#endif

#endif
