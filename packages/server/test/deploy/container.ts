import { chownSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningProcess, startProcess } from '@ringwire/testkit/process'
import type { Image } from './image.ts'

/** The options of a container engine, besides the image. */
export interface ContainerOptions {
  readonly env?: Readonly<Record<string, string>>
  /** Arguments in place of CMD. */
  readonly args?: readonly string[]
  /** Directories that are mounted over paths of the image, to be written to. */
  readonly volumes?: Readonly<Record<string, string>>
  /** Files that are mounted, to be read. */
  readonly files?: Readonly<Record<string, string>>
  /** A network of its own, in which there is nothing but loopback; else that of this machine. */
  readonly isAlone?: boolean
}

export interface Container {
  /** What it says, and its exit code. */
  readonly process: RunningProcess
  /** A signal to process 1. */
  signal(name: NodeJS.Signals): void
  /** Runs a command in it, as `docker exec` and health checks do; answers its exit code. */
  exec(command: readonly string[]): Promise<number>
  /** Ends it, if it has not ended. */
  remove(): Promise<void>
}

/** As a container engine does it: a root of its own that nobody can write to, and process 1 in it, which is not root. */
const script = `
root=$1; user=$2; alone=$3; shift 3
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"; shift 3; done
shift
[ "$alone" = no ] || busybox ip link set lo up
mount -o remount,bind,ro "$root"
exec chroot --userspec="$user:$user" --groups= "$root" "$@"`

/** Needs root on Linux. Resolves when process 1 is there. */
export async function startContainer(image: Image, options: ContainerOptions = {}): Promise<Container> {
  const { env = {}, args = image.defaultArgs, volumes = {}, files = {}, isAlone = false } = options
  for (const path of ['dev', 'proc']) mkdirSync(join(image.directory, path), { recursive: true })
  for (const path of Object.keys(files)) await Bun.write(join(image.directory, path), '')
  const mounts = [
    ...Object.entries(volumes).flatMap(([path, from]) => [from, path, 'rw']),
    ...Object.entries(files).flatMap(([path, from]) => [from, path, 'ro']),
  ]
  const spaces = ['--mount', '--propagation', 'private', '--pid', ...(isAlone ? ['--net'] : [])]
  const outer = startProcess(
    [
      ...['unshare', ...spaces, '--fork', '--kill-child', '--', 'sh', '-ec', script, 'sh'],
      ...[image.directory, String(image.user), isAlone ? 'yes' : 'no', ...mounts, '--', ...image.entrypoint, ...args],
    ],
    { HOME: '/', ...image.environment, ...env },
  )
  let isOver = false
  void outer.exited.then(() => {
    isOver = true
  })
  // `unshare` starts one process, which becomes that of the image without a new number.
  let first: number | undefined
  while (first === undefined && !isOver) {
    const children = readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, 'utf8').trim()
    if (children !== '') first = Number(children)
    else await Bun.sleep(1)
  }
  const signal = (name: NodeJS.Signals) => {
    if (first !== undefined && !isOver) process.kill(first, name)
  }
  return {
    process: outer,
    signal,
    async remove() {
      // All others in it end with process 1.
      signal('SIGKILL')
      await outer.exited
    },
    exec: (command) =>
      startProcess([
        ...['nsenter', '--target', String(first), '--mount', '--pid', '--net', '--root', '--wd=/'],
        ...['--setuid', String(image.user), '--setgid', String(image.user), '--', ...command],
      ]).exited,
  }
}

/** A directory for a volume, which belongs to the user of the image. */
export function makeVolume({ user }: Image): string {
  const path = mkdtempSync(join(tmpdir(), 'ringwire-volume-'))
  chownSync(path, user, user)
  return path
}
