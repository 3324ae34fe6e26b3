#include "cli/elasticdl_args.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace cli {
namespace {

using Words = std::vector<std::string>;

const EdlCommand& Named(std::string_view name) {
  const auto it = std::ranges::find(EdlCommands(), name, &EdlCommand::name);
  EXPECT_NE(it, EdlCommands().end()) << name;
  return *it;
}

base::Result<EdlArgs> Train(Words words) {
  words.insert(words.begin(), "--job_name=a");
  return ParseEdl(Named("train"), words);
}

std::string Refusal(const Words& words) {
  auto args = Train(words);
  return args ? "" : args.error().text();
}

TEST(EdlArgs, TakeAnOptionInBothForms) {
  for (const Words& words : {Words{"--num_workers=3"}, Words{"--num_workers", "3"},
                             Words{"--num_workers=9", "--num_workers", "3"}}) {
    auto args = Train(words);
    ASSERT_TRUE(args) << args.error().text();
    EXPECT_EQ(args->Get("num_workers"), "3");
    EXPECT_TRUE(args->Given("num_workers"));
  }
  EXPECT_EQ(Train({})->Get("num_workers"), "2");
  EXPECT_FALSE(Train({})->Given("num_workers"));
  EXPECT_EQ(Train({"--job_command=a=b c"})->Get("job_command"), "a=b c");
  EXPECT_EQ(Train({"--envs="})->Get("envs"), "");
}

TEST(EdlArgs, TakeABeginningThatIsNoOthers) {
  auto args = Train({"--num_ps=1", "--num_evaluator", "1", "--need_tf"});
  ASSERT_TRUE(args) << args.error().text();
  EXPECT_EQ(args->Get("num_ps_pods"), "1");
  EXPECT_EQ(args->Get("num_evaluators"), "1");
  EXPECT_TRUE(args->IsTrue("need_tf_config"));
  // One that is whole is itself, whatever begins with it.
  EXPECT_EQ(Train({"--cluster_spec=x"})->Get("cluster_spec"), "x");
  EXPECT_EQ(Refusal({"--num_w=1", "--num=2"}),
            "ambiguous option: --num could be --num_workers, --num_ps_pods, --num_evaluators, "
            "--num_minibatches_per_task, --num_epochs");
}

TEST(EdlArgs, HaveTheBooleansOfElasticDl) {
  const std::vector<std::tuple<Words, std::string, bool>> table = {
      {{}, "need_tf_config", false},
      {{"--need_tf_config"}, "need_tf_config", true},
      {{"--need_tf_config", "true"}, "need_tf_config", true},
      {{"--need_tf_config=True"}, "need_tf_config", true},
      {{"--need_tf_config=Y"}, "need_tf_config", true},
      {{"--need_tf_config=t"}, "need_tf_config", true},
      {{"--need_tf_config=yes"}, "need_tf_config", true},
      {{"--need_tf_config=1"}, "need_tf_config", false},
      {{"--need_tf_config=on"}, "need_tf_config", false},
      {{"--need_tf_config="}, "need_tf_config", false},
      {{}, "need_task_manager", true},
      {{"--need_task_manager"}, "need_task_manager", false},
      {{"--need_task_manager", "--use_async"}, "need_task_manager", false},
      {{"--need_task_manager=true"}, "need_task_manager", true},
  };
  for (const auto& [words, option, expected] : table) {
    auto args = Train(words);
    ASSERT_TRUE(args) << args.error().text();
    EXPECT_EQ(args->IsTrue(option), expected) << testing::PrintToString(words);
  }
}

TEST(EdlArgs, TellWhatABooleanMayNotHaveMeant) {
  EXPECT_EQ(Train({"--need_tf_config=1"})->warnings(),
            (Words{"--need_tf_config=1 means false: only true, yes, t and y mean true"}));
  EXPECT_EQ(
      Train({"--need_task_manager"})->warnings(),
      (Words{"--need_task_manager without a value turns it off: it is on unless said otherwise"}));
  EXPECT_EQ(Train({"--need_task_manager=False", "--need_tf_config"})->warnings(), Words());
}

TEST(EdlArgs, TellWhatHasNoEffect) {
  EXPECT_EQ(Train({"--model_zoo=z", "--loss", "l", "--log_level=DEBUG"})->warnings(),
            (Words{"--model_zoo, --loss: for ElasticDL's own training loop: no effect on a "
                   "--job_command",
                   "--log_level: no effect"}));
  EXPECT_EQ(Train({"--log_level=INFO", "--num_epochs=1"})->warnings(), Words());
}

TEST(EdlArgs, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(Refusal({"--num_wokers=2"}),
            "unknown option --num_wokers: did you mean --num_workers?");
  EXPECT_EQ(Refusal({"--zzzzzzzzz"}), "unknown option --zzzzzzzzz: see elasticdl train --help");
  EXPECT_EQ(Refusal({"-x"}), "unknown option -x: see elasticdl train --help");
  EXPECT_EQ(Refusal({"word"}), "unexpected word 'word'");
  EXPECT_EQ(Refusal({"--", "--num_workers"}), "unexpected word '--num_workers'");
}

TEST(EdlArgs, RefuseValuesThatCannotBe) {
  EXPECT_EQ(Refusal({"--num_workers=two"}), "--num_workers: must be a whole number, not 'two'");
  EXPECT_EQ(Refusal({"--num_workers"}), "--num_workers: needs a value");
  EXPECT_EQ(Refusal({"--job_command", "--need_tf_config"}), "--job_command: needs a value");
  EXPECT_EQ(Refusal({"--restart_policy=Sometimes"}),
            "--restart_policy: must be one of Never, OnFailure, Always, not 'Sometimes'");
  EXPECT_EQ(Train({"--num_workers=0"})->Number("num_workers", 1, 9).error().text(),
            "--num_workers: must be a whole number from 1 to 9, not '0'");
  EXPECT_EQ(ParseEdl(Named("train"), {}).error().text(), "--job_name is required");
}

TEST(EdlArgs, TakeForAValueWhatArgparseDoes) {
  EXPECT_EQ(Train({"--num_epochs", "-1"})->Get("num_epochs"), "-1");
  EXPECT_EQ(Train({"--job_command", "-c a b"})->Get("job_command"), "-c a b");
  EXPECT_EQ(Train({"--job_command", "-"})->Get("job_command"), "-");
  EXPECT_EQ(Train({"--job_command", ""})->Get("job_command"), "");
}

TEST(EdlArgs, OfTheZooHaveAWordOfTheirOwn) {
  EXPECT_EQ(ParseEdl(Named("zoo build"), {"--image=a:1", "."})->operand(), ".");
  EXPECT_EQ(ParseEdl(Named("zoo build"), {"."}).error().text(), "--image is required");
  EXPECT_EQ(ParseEdl(Named("zoo build"), {"--image=a"}).error().text(),
            "PATH: usage: elasticdl zoo build [options] PATH");
  EXPECT_EQ(ParseEdl(Named("zoo push"), {"a", "b"}).error().text(), "unexpected word 'b'");
}

TEST(EdlArgs, HelpComesBeforeWhatIsWrongBehindIt) {
  for (const char* word : {"-h", "--help"})
    EXPECT_TRUE(ParseEdl(Named("train"), {word, "-x"})->help());
  const std::string text = EdlUsage(Named("train"));
  for (const EdlOption& option : Named("train").options) {
    EXPECT_NE(text.find("--" + std::string(option.name)), std::string::npos);
  }
}

TEST(EdlArgs, EveryOptionIsInTheTableOnce) {
  for (const EdlCommand& command : EdlCommands()) {
    std::set<std::string_view> names;
    for (const EdlOption& option : command.options) {
      EXPECT_TRUE(names.insert(option.name).second) << option.name;
    }
  }
}

}  // namespace
}  // namespace cli
