// Of the host's input and output, device code has printf, which NVRTC brings.
#pragma once

#include <stddef.h>
