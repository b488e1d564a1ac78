// Writes the headers for the built-in kinds at build time: catalog_headers FOLDER INCLUDE_PREFIX
#include <cstdio>
#include <fstream>

#include "applygen/applygen.h"

int main(int count, char** arguments) {
  if (count != 3) return 1;
  for (const holdfast::applygen::Package& package : holdfast::applygen::packages_of_catalog()) {
    const std::string path = std::string(arguments[1]) + "/" + package.name + ".h";
    std::ofstream file(path);
    file << holdfast::applygen::header_of(package, arguments[2]);
    if (!file.flush()) {
      fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
  }
}
