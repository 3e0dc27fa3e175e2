#include "bin/cli/facts.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace ooc::cli {

TEST_CASE("facts: text for people") {
  Facts facts;
  facts["name"] = "cora";
  facts["edges"] = 1234567;
  facts["offset"] = -1000;
  facts["hundred"] = 100;
  facts["share"] = 0.25;
  facts["symmetric"] = true;
  facts["nothing"] = nullptr;
  facts["empty"] = Facts::object();
  facts["total_bytes"] = 1536;
  facts["bytes_read"] = 2048.4;
  facts["file_bytes"] = {{"edges.in", 1 << 20}, {"ids", 8}};
  CHECK(facts_to_text(facts) ==
        "name         cora\n"
        "edges        1,234,567\n"
        "offset       -1,000\n"
        "hundred      100\n"
        "share        0.25\n"
        "symmetric    yes\n"
        "total_bytes  1.5 KiB\n"
        "bytes_read   2 KiB\n"
        "file_bytes\n"
        "  edges.in  1 MiB\n"
        "  ids       8 B\n");
}

TEST_CASE("facts: what is no UTF-8 does not throw") {
  Facts facts;
  facts["paths"] = {"Gr\xf6sse.npy"};
  CHECK(facts_to_text(facts) == "paths  [\"Gr\xef\xbf\xbdsse.npy\"]\n");
}

}  // namespace ooc::cli
