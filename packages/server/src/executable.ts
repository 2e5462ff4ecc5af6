/** Where the executable begins. It has no launcher that sets up the runtime, so it does that itself, before anything else is read. */
import { runtimeSettings } from '../bin/runtime-settings.mjs'

/** The runtime reads its settings when a process begins: so this one begins once more, and stays the same process. */
function becomeService(args: readonly string[]): void {
  const isSet = Object.keys(runtimeSettings).every((name) => process.env[name] !== undefined)
  if (args[0] !== 'serve' || isSet || process.execve === undefined) return
  try {
    process.execve(process.execPath, [process.execPath, ...args], { ...runtimeSettings, ...process.env })
  } catch {
    // It may not be allowed to: then it goes on without them.
  }
}

becomeService(process.argv.slice(2))
await import('./main.ts')
