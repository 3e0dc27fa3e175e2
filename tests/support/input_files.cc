#include "tests/support/input_files.h"

#include <fmt/format.h>
#include <zip.h>
#include <zlib.h>

#include "storage/base/errors.h"

namespace ooc::test {

void put_file(FileSystem& files, const std::string& path, std::string_view bytes) {
  const auto file = files.create(path);
  file->write_at(0, std::as_bytes(std::span(bytes)));
  file->close();
}

std::string npy_file(std::string_view descr, const std::vector<std::int64_t>& shape,
                     std::string_view payload, bool fortran_order, int version) {
  std::string extents = fmt::format("{}", fmt::join(shape, ", "));
  if (shape.size() == 1) extents += ",";
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", descr,
                                 fortran_order ? "True" : "False", extents);
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  while ((8 + length_bytes + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) {
    file += static_cast<char>((text.size() >> (8 * i)) & 0xff);
  }
  return file.append(text).append(payload);
}

std::string gzip(std::string_view text) {
  z_stream stream = {};
  OOC_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  OOC_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool compressed) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  zip_t* const archive = zip_open_from_source(target, ZIP_TRUNCATE, &error);
  OOC_CHECK(archive != nullptr);
  for (const auto& [name, bytes] : members) {
    zip_source_t* const source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    const zip_int64_t index = zip_file_add(archive, name.c_str(), source, 0);
    OOC_CHECK(index >= 0);
    zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                             compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  OOC_CHECK(zip_close(archive) == 0);
  OOC_CHECK(zip_source_open(target) == 0);
  zip_source_seek(target, 0, SEEK_END);
  std::string out(static_cast<std::size_t>(zip_source_tell(target)), '\0');
  zip_source_seek(target, 0, SEEK_SET);
  OOC_CHECK(zip_source_read(target, out.data(), out.size()) ==
            static_cast<zip_int64_t>(out.size()));
  zip_source_close(target);
  zip_source_free(target);
  return out;
}

}  // namespace ooc::test
