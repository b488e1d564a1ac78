// Measures nanoseconds to compile and to evaluate an expression: cel_bench OBJECT.json EXPRESSION SECONDS
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/files.h"
#include "cel/cel.h"
#include "codec/codec.h"

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <class Work>
double per_call(double seconds, Work work) {
  work();
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    long calls = 0;
    const double start = now();
    while (now() - start < seconds / 5) {
      for (int i = 0; i < 16; ++i) work();
      calls += 16;
    }
    const double ns = (now() - start) * 1e9 / static_cast<double>(calls);
    if (best == 0 || ns < best) best = ns;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace holdfast;
  if (argc != 4) return 1;
  const Result<std::string> text = read_file(argv[1]);
  if (!text) return 1;
  const Result<codec::Document> object = codec::parse_json(*text);
  if (!object) return 1;
  const double seconds = atof(argv[3]);
  cel::Environment::Options options;
  options.variables = {{"object", cel::dyn_type()}};
  const auto environment = cel::Environment::make(std::move(options));
  cel::Environment::Compiled compiled;
  printf("compile %.0f\n", per_call(seconds, [&] { compiled = environment->compile(argv[2]); }));
  if (compiled.program == nullptr) return 1;
  cel::Bindings bindings(*environment);
  bindings.set(0, cel::Val::data(object->root()));
  printf("evaluate %.0f\n", per_call(seconds, [&] {
           Arena arena;
           if (compiled.program->evaluate(bindings, arena).value.is_error()) abort();
         }));
}
