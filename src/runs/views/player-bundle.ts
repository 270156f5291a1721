/**
 * A macro that runs when the importing module is read from source, or compiled into the executable: either has the player as one text.
 * It starts another process, because a macro may not call the bundler that waits for it.
 */
export function playerBundle(): string {
  const command = ["build", `${import.meta.dir}/../player/main.ts`, "--target=browser", "--format=esm", "--minify"];
  const built = Bun.spawnSync([process.execPath, ...command]);
  if (!built.success) throw new Error(`the player cannot be bundled: ${built.stderr.toString()}`);
  return built.stdout.toString();
}
