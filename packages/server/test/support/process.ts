import { readdirSync, readFileSync } from 'node:fs'

/** Resident memory of a process in bytes. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024
}

/** Open files of a process, sockets among them. */
export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}
