// fuzz_seeds DIR: writes every target's seeds to DIR/<target>/, where libFuzzer can start from
// them.
#include <cstdio>

#include "storage/io/file.h"
#include "tests/fuzz/targets.h"
#include "tests/support/input_files.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: fuzz_seeds DIR\n", stderr), 2;
  ooc::FileSystem& files = ooc::posix_file_system();
  for (const ooc::fuzz::Target& target : ooc::fuzz::targets()) {
    const std::string directory = ooc::join_path(argv[1], target.name);
    files.create_directories(directory);
    int number = 0;
    for (const std::string& seed : target.seeds()) {
      ooc::test::put_file(files, ooc::join_path(directory, "seed-" + std::to_string(number++)),
                          seed);
    }
  }
  return 0;
}
