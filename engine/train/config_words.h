// The words of a training's options, as the command line and config.toml say them.
#pragma once

#include "engine/model/parts/words.h"
#include "engine/train/run_config.h"

namespace ooc {

inline constexpr Words<OptimizerKind, 3> kOptimizers{{{"adam", OptimizerKind::kAdam},
                                                      {"adamw", OptimizerKind::kAdamW},
                                                      {"sgd", OptimizerKind::kSgd}}};
inline constexpr Words<LrSchedule, 3> kLrSchedules{{{"constant", LrSchedule::kConstant},
                                                    {"cosine", LrSchedule::kCosine},
                                                    {"step", LrSchedule::kStep}}};

inline constexpr Words<Sampler, 2> kSamplers{
    {{"neighbor", Sampler::kNeighbor}, {"labor", Sampler::kLabor}}};

inline constexpr Words<Strategy, 4> kStrategies{{{"none", Strategy::kNone},
                                                 {"lru", Strategy::kLru},
                                                 {"dp", Strategy::kDp},
                                                 {"lp", Strategy::kLp}}};

inline constexpr Words<DevicePartition, 2> kDevicePartitions{
    {{"equal-edges", DevicePartition::kEqualEdges},
     {"equal-vertices", DevicePartition::kEqualVertices}}};

inline constexpr Words<DatasetIo, 4> kDatasetIos{{{"auto", DatasetIo::kAuto},
                                                  {"uring", DatasetIo::kUring},
                                                  {"threads", DatasetIo::kThreads},
                                                  {"mapped", DatasetIo::kMapped}}};

}  // namespace ooc
