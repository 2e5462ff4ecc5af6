// Two network namespaces with a slow, lossy link between them: the service is in one, its clients are in the other.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Conditions } from './network-carrier.ts'

/** Only inside the namespaces. */
export const SERVICE_ADDRESS = '10.0.0.1'
const CLIENT_ADDRESS = '10.0.0.2'

export interface Network {
  /** What stands before a command that runs at one end. */
  readonly service: string[]
  readonly clients: string[]
  stop(): Promise<void>
}

/** Why there can be no network here, as a note; undefined where there can. */
export function missingForNetwork(): string | undefined {
  const isRoot = process.getuid?.() === 0
  if (isRoot && Bun.which('ip') !== null && existsSync('/dev/net/tun')) return undefined
  return 'network: not measured, it needs root, the command ip (iproute2) and /dev/net/tun'
}

function ip(...args: string[]): void {
  const { success, stderr } = Bun.spawnSync(['ip', ...args])
  if (!success) throw new Error(`ip ${args.join(' ')}: ${stderr.toString().trim()}`)
}

export async function startNetwork({ delayMs, loss }: Conditions): Promise<Network> {
  const name = `rw${process.pid}`
  const [service, clients] = [`${name}s`, `${name}c`]
  const script = join(import.meta.dir, 'network-link.ts')
  const options = ['--delay', String(delayMs), '--loss', String(loss)]
  const link = Bun.spawn([process.execPath, script, ...options, service, clients], {
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const remove = () => {
    link.kill('SIGKILL')
    for (const namespace of [service, clients]) Bun.spawnSync(['ip', 'netns', 'del', namespace], { stderr: 'ignore' })
  }
  process.on('exit', remove)
  const stop = async () => {
    remove()
    process.off('exit', remove)
    await link.exited
  }
  try {
    const { done } = await link.stdout.getReader().read()
    if (done) throw new Error('The link between the namespaces did not start')
    place(service, SERVICE_ADDRESS, CLIENT_ADDRESS)
    place(clients, CLIENT_ADDRESS, SERVICE_ADDRESS)
    link.stdin.write('up\n')
    link.stdin.flush()
    const within = (namespace: string) => ['ip', 'netns', 'exec', namespace]
    return { service: within(service), clients: within(clients), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Device and namespace have one name. */
function place(name: string, own: string, peer: string): void {
  ip('netns', 'add', name)
  ip('link', 'set', name, 'netns', name)
  ip('-n', name, 'addr', 'add', own, 'peer', peer, 'dev', name)
  for (const device of ['lo', name]) ip('-n', name, 'link', 'set', device, 'up')
}
