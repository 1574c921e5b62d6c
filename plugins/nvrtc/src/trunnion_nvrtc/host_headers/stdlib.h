// Of the host's library, device code has malloc, free and abs, which NVRTC brings.
#pragma once

#include <stddef.h>

#ifndef EXIT_SUCCESS
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#endif
