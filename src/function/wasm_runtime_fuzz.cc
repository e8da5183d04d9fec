// Any bytes as a module: they are refused, or they load, start and answer or fail, and nothing outside of the sandbox
// is touched.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/files.h"
#include "function/call_for_test.h"
#include "function/wasm_runtime.h"

namespace {

struct World {
  orla::base::SystemClock clock;
  orla::base::TemporaryDirectory place = *orla::base::TemporaryDirectory::create("orla-wasm-fuzz");
  std::unique_ptr<orla::function::Runtime> runtime =
      orla::function::make_wasm_runtime({}, place.path() / "modules", clock);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orla;
  static World world;
  function::ModuleSpec spec;
  spec.image = world.place.path() / "image.wasm";
  spec.options.memory_bytes = 16 << 20;
  spec.options.exec_timeout = std::chrono::milliseconds(20);
  if (!base::write_file_atomically(spec.image, {reinterpret_cast<const char*>(data), size}).ok()) std::abort();
  const auto module = world.runtime->load(spec);
  if (!module.ok()) return 0;
  function::Cancellation cancellation;
  const auto instance =
      (*module)->start("fuzz-1", world.clock.steady_now() + std::chrono::milliseconds(50), cancellation);
  if (!instance.ok()) return 0;
  function::CallForTest call("some input");
  const function::CallResult result = call.run(**instance);
  if (!result.instance_usable || call.response.begins() > 1) std::abort();
  return 0;
}
