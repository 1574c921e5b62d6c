// NVRTC brings assert, and looks at NDEBUG before the source does; like C's, this header looks anew each time.
#ifdef NDEBUG
#undef assert
#define assert(condition) (static_cast<void>(0))
#endif
