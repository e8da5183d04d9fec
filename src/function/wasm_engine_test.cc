#include "function/wasm_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/folder_entries.h"
#include "function/wasm_for_test.h"

namespace orla::function {
namespace {

class Engine : public ::testing::Test {
 protected:
  Engine() : place_(*base::TemporaryDirectory::create("orla-engine")) { restart(); }
  void restart() {
    engine_ = nullptr;
    auto engine = WasmEngine::create({}, place_.path() / "modules", clock_);
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }
  std::string wasm(int number) {
    return *wasm_of_text(engine_->api(),
                         "(module (memory (export \"memory\") 1) (func (export \"_start\")) (global i32 "
                         "(i32.const " +
                             std::to_string(number) + ")))");
  }
  // Loads the module through a share of its hash.
  std::shared_ptr<SharedWasm> load(const std::string& bytes) {
    std::shared_ptr<SharedWasm> shared = engine_->share(base::sha256(bytes));
    const auto loaded = shared->get([&] { return bytes; });
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return shared;
  }

  base::SystemClock clock_;
  base::TemporaryDirectory place_;
  std::unique_ptr<WasmEngine> engine_;
};

TEST_F(Engine, EqualModulesAreCompiledOnceAndShared) {
  const std::string bytes = wasm(1);
  const auto first = load(bytes);
  const auto second = load(bytes);
  EXPECT_EQ(first, second);
  EXPECT_EQ(engine_->compiled_modules(), 1U);
  EXPECT_EQ(engine_->loaded_modules(), 1U);
}

TEST_F(Engine, ACompiledModuleIsTakenFromTheDisk) {
  const std::string bytes = wasm(1);
  load(bytes)->unload();
  EXPECT_EQ(engine_->loaded_modules(), 0U);
  load(bytes);
  EXPECT_EQ(engine_->compiled_modules(), 1U);
  restart();
  load(bytes);
  EXPECT_EQ(engine_->compiled_modules(), 0U);
}

TEST_F(Engine, ACorruptFileIsCompiledAnew) {
  const std::string bytes = wasm(1);
  load(bytes);
  const std::filesystem::path path = engine_->cache().path_of(base::sha256(bytes));
  restart();
  std::string file = *base::read_file(path, 1 << 24);
  file[file.size() / 2] = static_cast<char>(file[file.size() / 2] ^ 0x40);
  ASSERT_TRUE(base::write_file_atomically(path, file).ok());
  load(bytes);
  EXPECT_EQ(engine_->compiled_modules(), 1U);
  EXPECT_TRUE(engine_->cache().find(base::sha256(bytes)).ok());
  // Sealed rightly and yet nothing that this engine loads.
  restart();
  ASSERT_TRUE(engine_->cache().keep(base::sha256(bytes), "not an object file").ok());
  load(bytes);
  EXPECT_EQ(engine_->compiled_modules(), 1U);
}

TEST_F(Engine, AnImageThatChangedIsNotRun) {
  const auto shared = engine_->share(base::sha256("what was deployed"));
  const auto loaded = shared->get([&] { return wasm(1); });
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(Engine, ReplicasKeepAModuleLoaded) {
  const auto shared = load(wasm(1));
  shared->replicas = 1;
  shared->unload();
  EXPECT_TRUE(shared->loaded());
  shared->replicas = 0;
  shared->unload();
  EXPECT_FALSE(shared->loaded());
}

TEST_F(Engine, NoMoreModulesAreLoadedThanFit) {
  std::vector<std::shared_ptr<SharedWasm>> all;
  for (std::size_t i = 0; i < kLoadedWasmModules + 5; ++i) all.push_back(load(wasm(static_cast<int>(i))));
  EXPECT_EQ(engine_->loaded_modules(), kLoadedWasmModules);
  EXPECT_FALSE(all[0]->loaded());  // used least recently
  EXPECT_TRUE(all.back()->loaded());
  all.clear();
  EXPECT_EQ(engine_->loaded_modules(), 0U);
}

TEST_F(Engine, RoomAndWarmthAreCounted) {
  std::uint32_t taken = 0;
  while (engine_->take_room()) ++taken;
  EXPECT_EQ(taken, engine_->instances());
  EXPECT_GE(taken, 128U);
  std::uint32_t warm = 0;
  while (engine_->keep_warm()) ++warm;
  EXPECT_LT(warm, taken);
}

}  // namespace
}  // namespace orla::function
