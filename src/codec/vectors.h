// The recorded encodings of real objects in tests/vectors, for tests. Private to the module.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/base64.h"

namespace holdfast::codec {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Vector {
  std::string name;
  std::string json, protobuf, cbor;  // Empty where there is none.
};

inline std::vector<Vector> all_vectors() {
  const std::filesystem::path folder = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "tests" / "vectors";
  std::vector<Vector> vectors;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "index.json") continue;
    Vector vector{.name = entry.path().stem().string(), .json = read_file(entry.path()), .protobuf = {}, .cbor = {}};
    while (vector.json.ends_with('\n')) vector.json.pop_back();
    vector.protobuf = base64_decode(read_file(folder / (vector.name + ".pb.b64"))).value();
    vector.cbor = base64_decode(read_file(folder / (vector.name + ".cbor.b64"))).value();
    vectors.push_back(std::move(vector));
  }
  std::sort(vectors.begin(), vectors.end(), [](const Vector& a, const Vector& b) { return a.name < b.name; });
  return vectors;
}

}  // namespace holdfast::codec
