// In place of the GPU's driver, whose library is only looked for.
extern "C" int cuda_emulation_driver() { return 1; }
