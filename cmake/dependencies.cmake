# Every third-party library, once. Debian's packages: see bin/install-dependencies.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(Boost REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(mimalloc REQUIRED)
find_package(pegtl REQUIRED)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(HWY_CONTRIB REQUIRED IMPORTED_TARGET libhwy-contrib)
find_path(METIS_INCLUDE_DIR metis.h REQUIRED)
find_library(METIS_LIBRARY metis REQUIRED)
pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial)
pkg_check_modules(LIBURING REQUIRED IMPORTED_TARGET liburing)

# Clp, COIN-OR's solver of linear programs; its own file for pkg-config asks for LAPACK's headers.
find_path(CLP_INCLUDE_DIR ClpSimplex.hpp PATH_SUFFIXES coin REQUIRED)
find_library(CLP_LIBRARY Clp REQUIRED)
find_library(COINUTILS_LIBRARY CoinUtils REQUIRED)
add_library(clp INTERFACE)
target_include_directories(clp SYSTEM INTERFACE ${CLP_INCLUDE_DIR})
target_link_libraries(clp INTERFACE ${CLP_LIBRARY} ${COINUTILS_LIBRARY})
# The LAPACK behind it may be OpenBLAS's, whose symbols are wrapped where the serial one is linked.
target_link_options(clp INTERFACE -Wl,--allow-shlib-undefined)

find_path(FAST_FLOAT_INCLUDE_DIR fast_float/fast_float.h REQUIRED)

# The serial OpenBLAS: it is called from many TBB tasks at once and must not start threads itself.
find_library(OPENBLAS_SERIAL libopenblas.a PATH_SUFFIXES openblas-serial REQUIRED)
find_path(OPENBLAS_SERIAL_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial REQUIRED)
add_library(openblas_serial INTERFACE)
target_include_directories(openblas_serial SYSTEM INTERFACE ${OPENBLAS_SERIAL_INCLUDE_DIR})
target_link_libraries(openblas_serial INTERFACE ${OPENBLAS_SERIAL} Threads::Threads m)
