// calls_bench CALLS AT_ONCE: gets and applies per second from one process. Compared with go/main.go, which does the
// same.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/process.h"
#include "client/client.h"

using namespace holdfast;
using namespace holdfast::client;

namespace {

struct Run {
  Api<> api;
  int calls;
  bool apply;
  int next = 0;
  int failed = 0;
};

Task<Result<Unit>> caller(Run& run, int number) {
  while (run.next < run.calls) {
    const int i = run.next++;
    if (!run.apply) {
      Result<Object> got = co_await run.api.get("bench-" + std::to_string(number));
      run.failed += got ? 0 : 1;
      continue;
    }
    Arena arena;
    const std::string body = R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bench-)" +
                             std::to_string(number) + R"("},"data":{"x":")" + std::to_string(i) + R"("}})";
    Result<Value> config = codec::decode_json(arena, body);
    Result<Object> applied = co_await run.api.apply(*config, {.force = true});
    run.failed += applied ? 0 : 1;
  }
  co_return Unit{};
}

// Runs all callers concurrently; completes with the last one.
Task<Result<Unit>> run_callers(Run& run, int at_once) {
  struct All {
    int left;
    std::coroutine_handle<> waiter;
    bool await_ready() const noexcept { return left == 0; }
    void await_suspend(std::coroutine_handle<> h) { waiter = h; }
    void await_resume() const noexcept {}
  } all{at_once, {}};
  auto one = [](Run& the_run, int number, All& the_all) -> Task<void> {
    (void)co_await caller(the_run, number);
    if (--the_all.left == 0 && the_all.waiter) the_all.waiter.resume();
  };
  for (int i = 0; i < at_once; ++i) spawn(one(run, i, all), [](std::exception_ptr) {});
  co_await all;
  co_return Unit{};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return 1;
  const int calls = std::atoi(arguments[1]), at_once = std::atoi(arguments[2]);
  Options options;
  options.field_manager = "bench";
  Result<Client> client = Client::connect(std::move(options));
  if (!client) return fprintf(stderr, "%s\n", client.error().message.c_str()), 1;
  for (const bool apply : {true, false}) {
    Run run{client->api(builtin("v1", "ConfigMap"), "default"), calls, apply};
    const auto start = std::chrono::steady_clock::now();
    const double before = cpu_seconds();
    (void)Call<Result<Unit>>(client->loop(), run_callers(run, at_once)).wait();
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    printf("%s %.0f %.1f %d\n", apply ? "applies" : "gets", calls / took, (cpu_seconds() - before) / calls * 1e6,
           run.failed);
  }
}
