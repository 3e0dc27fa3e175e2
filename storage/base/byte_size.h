// Byte sizes as users write and read them: "512MiB", "4GiB", "1.5G", "4096".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ooc {

// K, M, G, T (also KiB ... TiB, any case) are powers of 1024; KB, MB, GB, TB powers of 1000; no
// unit or B: bytes. Nothing for anything else, negative or too large for 63 bits.
std::optional<std::int64_t> parse_byte_size(std::string_view text);

// The largest binary unit with at most one decimal: "512 B", "1.5 GiB", "4 GiB".
std::string format_byte_size(std::int64_t bytes);

}  // namespace ooc
