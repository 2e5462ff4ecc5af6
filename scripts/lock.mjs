// One process of this machine at a time, for a directory. Plain Node, no dependencies.
import { createHash } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

/** Runs `work` while no other process does so for the same directory; waits for its turn. */
export function withLock(directory, work) {
  const name = createHash('sha256').update(`${userInfo().uid} ${directory}`).digest('hex').slice(0, 16)
  // Not inside the directory: `npm ci` empties node_modules, and a clean checkout stays clean.
  const path = join(tmpdir(), `ringwire-${name}.lock`)
  acquire(path)
  const release = () => rmSync(path, { force: true })
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

function acquire(path) {
  let told = false
  for (;;) {
    const holder = tryAcquire(path)
    if (holder === undefined) return
    if (holder === 0) continue
    if (isAlive(holder)) {
      if (!told) console.error(`Waiting for the set-up by process ${holder} …`)
      told = true
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    } else removeStale(path, holder)
  }
}

/** The process id of the holder, 0 where it gave the lock back just now, or undefined where the lock is ours. */
function tryAcquire(path) {
  // Written first and then linked, so that a lock never exists without its holder.
  const own = `${path}.${process.pid}`
  writeFileSync(own, String(process.pid))
  try {
    linkSync(own, path)
    return undefined
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    return readHolder(path)
  } finally {
    rmSync(own, { force: true })
  }
}

function readHolder(path) {
  try {
    return Number(readFileSync(path, 'utf8'))
  } catch (error) {
    if (error.code !== 'ENOENT') throw error
    return 0
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** Takes a dead holder's lock away. Where another process did so first, what was taken is its lock: it goes back. */
function removeStale(path, holder) {
  const taken = `${path}.${process.pid}.stale`
  try {
    renameSync(path, taken)
  } catch (error) {
    if (error.code === 'ENOENT') return
    throw error
  }
  try {
    if (readHolder(taken) !== holder) linkSync(taken, path)
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  } finally {
    rmSync(taken, { force: true })
  }
}
