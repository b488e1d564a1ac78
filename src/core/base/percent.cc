#include "base/percent.h"

#include "base/ascii.h"
#include "base/url.h"

namespace holdfast {

void append_percent_encoded(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      append_percent_encoded(out, c);
    }
  }
}

}  // namespace holdfast
