// Returns 0 below 0, 1 above 1, and 3 x^2 - 2 x^3 between.
__device__ float smooth_step(float x) {
  const float t = fminf(fmaxf(x, 0.0f), 1.0f);
  return t * t * (3.0f - 2.0f * t);
}
