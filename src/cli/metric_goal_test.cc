#include "cli/metric_goal.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(MetricGoal, MatchesWholeWordsOfTheName) {
  for (const char* name : {"loss", "val_loss", "giou_loss", "GIoULoss", "validation/epoch_loss",
                           "loss_1", "accuracy_loss", "mean_absolute_error", "error_rate", "rmse",
                           "binary_crossentropy", "cross_entropy", "logLoss", "score/mae"}) {
    EXPECT_EQ(GoalOf(name), Goal::kMin) << name;
  }
  for (const char* name :
       {"accuracy", "val_accuracy", "acc", "acc@1", "sparse_categorical_accuracy", "auc_1",
        "ROC-AUC", "val_mean_io_u", "meanIoU", "mIoU", "f1_score", "F1", "f_1", "precision", "val/mAP", "r2",
        "cosine_similarity", "episode.reward"}) {
    EXPECT_EQ(GoalOf(name), Goal::kMax) << name;
  }
}

TEST(MetricGoal, LeavesNamesWithoutAKnownWordToTheUser) {
  for (const char* name : {"", "quality", "latency", "gloss", "accumulated_steps", "vacc", "terror",
                           "neg_mean_squared_error", "negative_log_likelihood", "_/-"}) {
    EXPECT_EQ(GoalOf(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace cli
