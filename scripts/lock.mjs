// One process of this machine at a time, for a directory. Plain Node, no dependencies.
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

/** Runs `work` while no other process does so for the same directory; waits for its turn. */
export function withLock(directory, work) {
  const name = createHash('sha256').update(`${userInfo().uid} ${directory}`).digest('hex').slice(0, 16)
  // Not inside the directory: `npm ci` empties node_modules, and a clean checkout stays clean.
  const claim = acquire(`ringwire-${name}.lock.`)
  const release = () => rmSync(claim, { force: true })
  // process.exit() and signals end the work as well.
  process.once('exit', release)
  const onSignal = () => process.exit(1)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, onSignal)
  try {
    return work()
  } finally {
    process.removeListener('exit', release)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeListener(signal, onSignal)
    release()
  }
}

/**
 * A process that wants it claims it with a file of its own, and has it if there is no other claim then: of two, the one
 * that claims later sees the other. So no file is ever taken away from a process that lives.
 */
function acquire(prefix) {
  let told = false
  for (;;) {
    let holder = livingHolder(prefix)
    if (holder === undefined) {
      const claim = join(tmpdir(), `${prefix}${process.pid}.${randomBytes(6).toString('hex')}`)
      writeFileSync(claim, '')
      holder = livingHolder(prefix, claim)
      if (holder === undefined) return claim
      rmSync(claim, { force: true })
    } else if (!told) {
      console.error(`Waiting for the set-up by process ${holder} …`)
      told = true
    }
    // Two that claimed at once have both given way: not so again.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20 + 180 * Math.random())
  }
}

/** The process id of somebody else who claims it; claims of the dead are removed. */
function livingHolder(prefix, own) {
  for (const name of readdirSync(tmpdir())) {
    const path = join(tmpdir(), name)
    if (!name.startsWith(prefix) || path === own) continue
    const holder = Number(name.slice(prefix.length).split('.')[0])
    if (isAlive(holder)) return holder
    rmSync(path, { force: true })
  }
  return undefined
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}
