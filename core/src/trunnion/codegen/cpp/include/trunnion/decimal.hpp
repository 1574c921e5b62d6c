// Numbers in decimal, as Python prints them, for messages; without a null at their end.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace trunnion {

__extension__ typedef unsigned __int128 UnsignedWide;
__extension__ typedef __int128 Wide;  // holds the result of every one operation on two 64-bit values

// Write a value, and return the number of characters: at most 40.
uint32_t write_decimal(Wide value, char* out);

constexpr bool is_digit(char character) { return character >= '0' && character <= '9'; }

// Write a double as Python's repr, and return the number of characters; takes room for 48.
uint32_t write_double(double value, char* out);

}  // namespace trunnion
