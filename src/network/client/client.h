// A client for any Kubernetes API server; some features need Holdfast.
//
//   Result<Client> client = Client::connect();                       // Finds the server like kubectl.
//   Api<> pods = client->api(builtin("v1", "Pod"), "default");
//   Result<Object> web = pods.get("web").wait();                     // In a simple program, or
//   Result<Object> web = co_await pods.get("web");                   // in a coroutine on the client's loop.
//   client->api<apps_v1::Deployment>("default").apply(apps_v1::Deployment("web").with_spec(...), {.force = true});
//
// Errors are the server's: reason, causes and details of the returned Status, and `code`, the HTTP status code. A call
// that did not reach the server, or got no response, fails with ServiceUnavailable and code 0.
//
// Objects returned by this module are immutable. A Client may be used from any thread; calls resume on its loop.
// Destroying it ends its watches and informers and waits for its calls.
#pragma once

#include "client/api.h"          // IWYU pragma: export
#include "client/apply.h"        // IWYU pragma: export
#include "client/config.h"       // IWYU pragma: export
#include "client/controller.h"   // IWYU pragma: export
#include "client/credentials.h"  // IWYU pragma: export
#include "client/informer.h"     // IWYU pragma: export
#include "client/leader.h"       // IWYU pragma: export
#include "client/object.h"       // IWYU pragma: export
