// libcu++'s, which is macros alone.
#pragma once

#include <climits>
