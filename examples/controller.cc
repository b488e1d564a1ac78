// A controller: every ConfigMap with the label example.com/site gets a Deployment that serves it, and a Service.
//
// It demonstrates informers that share one connection and omit managedFields, a work queue, generated apply
// configurations, and unsetting: when a site no longer specifies a number of replicas, the field is removed and stays
// removed, so that an autoscaler can own it.
//
//   controller [NAMESPACE]    all namespaces by default; ends on SIGINT and SIGTERM
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "holdfast/apply/apps_v1.h"
#include "holdfast/apply/core_v1.h"
#include "holdfast/client/client.h"

using namespace holdfast;
using namespace holdfast::client;

namespace {

constexpr const char* kManager = "site-controller";

// The configuration of a site.
struct Site {
  Object object;
  std::string name, space, image;
  std::optional<int32_t> replicas;
};

Site read_site(const Object& object) {
  Site site{object, std::string(object.name()), std::string(object.space()), "nginx", {}};
  if (const std::string_view image = object->text_at("data", "image"); !image.empty()) site.image = image;
  if (const std::string replicas(object->text_at("data", "replicas")); !replicas.empty()) {
    site.replicas = std::atoi(replicas.c_str());
  }
  return site;
}

apps_v1::Deployment deployment_of(const Site& site) {
  apps_v1::DeploymentSpec spec;
  spec.with_selector(meta_v1::LabelSelector().with_match_labels("site", site.name))
      .with_template(core_v1::PodTemplateSpec()
                         .with_metadata(meta_v1::ObjectMeta().with_labels("site", site.name))
                         .with_spec(core_v1::PodSpec()
                                        .with_containers(
                                            core_v1::Container()
                                                .with_name("web")
                                                .with_image(site.image)
                                                .with_ports(core_v1::ContainerPort().with_container_port(80))
                                                .with_volume_mounts(
                                                    core_v1::VolumeMount().with_name("site").with_mount_path("/site")))
                                        .with_volumes(core_v1::Volume().with_name("site").with_config_map(
                                            core_v1::ConfigMapVolumeSource().with_name(site.name)))));
  if (site.replicas) {
    spec.with_replicas(*site.replicas);
  } else {
    spec.unset_replicas();
  }
  return apps_v1::Deployment(site.name, site.space).with_spec(spec).with_controller(site.object);
}

core_v1::Service service_of(const Site& site) {
  return core_v1::Service(site.name, site.space)
      .with_spec(core_v1::ServiceSpec()
                     .with_selector("site", site.name)
                     .with_ports(core_v1::ServicePort().with_name("http").with_port(80).with_target_port(80)))
      .with_controller(site.object);
}

class Sites {
 public:
  Sites(Client& client, const std::string& space)
      : client_(client),
        controller_(client, [this](std::string key) { return reconcile(std::move(key)); }, {.workers = 4}) {
    sites_ = controller_.follow(builtin("v1", "ConfigMap"), {.space = space, .label_selector = "example.com/site"});
    // Restores owned objects that others change or delete.
    controller_.follow_owned(builtin("apps/v1", "Deployment"), "ConfigMap", {.space = space});
    controller_.follow_owned(builtin("v1", "Service"), "ConfigMap", {.space = space});
  }

  void start() { controller_.start(); }
  void stop() { controller_.stop(); }

 private:
  Task<Result<ReconcileResult>> reconcile(std::string key) {
    const std::optional<Stored> stored = sites_->get(key);
    if (!stored) co_return ReconcileResult{};  // Garbage collection deletes what it owned.
    const Site site = read_site(stored->get());
    Result<Object> deployment =
        co_await client_.api<apps_v1::Deployment>(site.space).apply(deployment_of(site), {.force = true});
    if (!deployment) co_return deployment.take_error();
    Result<Object> service =
        co_await client_.api<core_v1::Service>(site.space).apply(service_of(site), {.force = true});
    if (!service) co_return service.take_error();
    printf("reconciled %s\n", key.c_str());
    fflush(stdout);
    co_return ReconcileResult{};
  }

  Client& client_;
  Controller controller_;
  std::shared_ptr<Informer> sites_;
};

}  // namespace

int main(int count, char** arguments) {
  // Block signals before any thread starts, so that only sigwait receives them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);

  Result<Client> client = Client::connect(controller_options(kManager));
  if (!client) {
    fprintf(stderr, "%s\n", client.error().message.c_str());
    return 1;
  }
  Sites sites(*client, count > 1 ? arguments[1] : "");
  sites.start();
  int signal = 0;
  sigwait(&signals, &signal);
  sites.stop();
}
