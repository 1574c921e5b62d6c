// Of the host's library, device code has memcpy and memset, which NVRTC brings.
#pragma once

#include <stddef.h>
