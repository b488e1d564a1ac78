// A client for any Kubernetes API server, at its best against Holdfast.
//
//   Result<Client> client = Client::connect();                       // As kubectl finds its server.
//   Api<> pods = client->api(builtin("v1", "Pod"), "default");
//   Result<Object> web = pods.get("web").wait();                     // In a simple program, or
//   Result<Object> web = co_await pods.get("web");                   // in a coroutine on the client's loop.
//   client->api<apps_v1::Deployment>("default").apply(apps_v1::Deployment("web").with_spec(...), {.force = true});
//
// Errors are the server's own: reason, causes and details of the Status it returned, `code` its HTTP code; a call that
// did not reach the server, or got no response, is ServiceUnavailable with code 0.
//
// What leaves this module is immutable. Calls continue on the client's loop, whatever thread made them; a Client
// may be used from any thread. Destroying it ends its watches and informers and waits for its calls.
#pragma once

#include "client/api.h"          // IWYU pragma: export
#include "client/apply.h"        // IWYU pragma: export
#include "client/config.h"       // IWYU pragma: export
#include "client/controller.h"   // IWYU pragma: export
#include "client/credentials.h"  // IWYU pragma: export
#include "client/informer.h"     // IWYU pragma: export
#include "client/leader.h"       // IWYU pragma: export
#include "client/object.h"       // IWYU pragma: export
