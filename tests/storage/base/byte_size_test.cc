#include "storage/base/byte_size.h"

#include <catch2/catch.hpp>
#include <limits>

namespace ooc {

TEST_CASE("byte_size: what users write") {
  CHECK(parse_byte_size("4096") == 4096);
  CHECK(parse_byte_size("0") == 0);
  CHECK(parse_byte_size("10B") == 10);
  CHECK(parse_byte_size("512MiB") == 512LL << 20);
  CHECK(parse_byte_size("4 GiB") == 4LL << 30);
  CHECK(parse_byte_size("4gib") == 4LL << 30);
  CHECK(parse_byte_size("1.5G") == 3LL << 29);
  CHECK(parse_byte_size("2k") == 2048);
  CHECK(parse_byte_size("2KB") == 2000);
  CHECK(parse_byte_size("3TB") == 3'000'000'000'000);
  CHECK(parse_byte_size("0.5") == 0);
}

TEST_CASE("byte_size: what is none") {
  for (const char* text : {"", "G", "GiB", "-1", "-1G", "1Q", "1GiBs", "1 Gi", "1G 2", "0x10",
                           "nan", "inf", "1e3", "1,5G", " 1G", "9000000000T"}) {
    INFO(text);
    CHECK_FALSE(parse_byte_size(text).has_value());
  }
}

TEST_CASE("byte_size: what users read") {
  CHECK(format_byte_size(0) == "0 B");
  CHECK(format_byte_size(1023) == "1023 B");
  CHECK(format_byte_size(1024) == "1 KiB");
  CHECK(format_byte_size(3LL << 29) == "1.5 GiB");
  CHECK(format_byte_size((1LL << 30) - 1) == "1 GiB");  // never "1024 MiB"
  CHECK(format_byte_size(5LL << 50) == "5120 TiB");
  CHECK(format_byte_size(std::numeric_limits<std::int64_t>::max()) == "8388608 TiB");
}

TEST_CASE("byte_size: reading back what was written is close") {
  for (const std::int64_t bytes : {1LL, 1000LL, 123456789LL, 987654321012LL}) {
    const auto back = parse_byte_size(format_byte_size(bytes));
    REQUIRE(back.has_value());
    CHECK(static_cast<double>(*back) == Approx(static_cast<double>(bytes)).epsilon(0.05));
  }
}

}  // namespace ooc
