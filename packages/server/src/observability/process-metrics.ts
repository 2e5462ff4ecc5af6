import type { Descriptors } from './descriptors.ts'
import type { Family } from './families.ts'
import { gauge } from './series.ts'

/** What every process exporter of Prometheus calls these [MET2]. */
export function processFamilies(descriptors: Descriptors): Family[] {
  const { user, system } = process.cpuUsage()
  const cpu = 'process_cpu_seconds_total'
  const { limit } = descriptors
  return [
    gauge('process_resident_memory_bytes', [], 'Resident memory.', [[process.memoryUsage.rss()]]),
    {
      name: cpu,
      help: 'CPU time, of user and system together.',
      type: 'counter',
      samples: [[cpu, (user + system) / 1_000_000]],
    },
    // If the system does not say, there is no series.
    gauge('process_open_fds', [], 'Open file descriptors.', limit === undefined ? [] : [[descriptors.open()]]),
    gauge('process_max_fds', [], 'File descriptors that may be open.', limit === undefined ? [] : [[limit]]),
  ]
}
