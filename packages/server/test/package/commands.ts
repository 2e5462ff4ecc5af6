import { block } from '@ringwire/testkit/documents'

/** As in a shell of one's own: nothing of the npm that perhaps runs these tests. */
export function environment(more: Record<string, string> = {}): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|INIT_CWD$|NODE_OPTIONS$)/.test(name))
  return { ...(Object.fromEntries(own) as Record<string, string>), ...more }
}

/** What a command prints; throws where it fails. */
export async function run(directory: string, command: readonly string[], env: Record<string, string> = {}) {
  const child = Bun.spawn([...command], { cwd: directory, env: environment(env), stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${out}${err}`)
  return { out, err }
}

/** The two commands of a package's README, with a folder of the test. */
export function installCommands(name: string, tarballs: string): readonly string[] {
  const commands = block(`packages/${name}/README.md`, 'sh', '## Install').trimEnd()
  return commands.replaceAll('~/ringwire-packages', tarballs).split('\n')
}

/** Runs one of them where it is meant to be run. */
export const shell = (directory: string, command = '') => run(directory, ['sh', '-ec', command])
