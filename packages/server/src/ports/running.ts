/** Whether a process with this id runs on this machine. One of another account counts, too. */
export function isRunning(pid: number): boolean {
  try {
    // Signal 0 only asks.
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
