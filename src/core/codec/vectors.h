// Recorded encodings of real objects in tests/vectors, for tests. Private to the module.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/base64.h"
#include "base/files.h"

namespace holdfast::codec {

struct Vector {
  std::string name;
  std::string json, protobuf, cbor;  // Empty if there is none.
};

inline std::vector<Vector> all_vectors() {
  const std::filesystem::path folder = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "tests" / "vectors";
  std::vector<Vector> vectors;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().filename() == "index.json") continue;
    Vector vector{.name = entry.path().stem().string(), .json = *read_file(entry.path()), .protobuf = {}, .cbor = {}};
    while (vector.json.ends_with('\n')) vector.json.pop_back();
    const auto recorded = [&](const char* extension) {
      const Result<std::string> text = read_file(folder / (vector.name + extension));
      return text ? base64_decode(*text).value() : std::string();
    };
    vector.protobuf = recorded(".pb.b64");
    vector.cbor = recorded(".cbor.b64");
    vectors.push_back(std::move(vector));
  }
  std::sort(vectors.begin(), vectors.end(), [](const Vector& a, const Vector& b) { return a.name < b.name; });
  return vectors;
}

}  // namespace holdfast::codec
