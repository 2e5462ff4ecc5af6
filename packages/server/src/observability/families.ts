/**
 * What metrics are told as: families of samples, plain data that goes from process to process, is summed there, and is
 * printed in the text format of Prometheus (version 0.0.4).
 */

/** The name of a sample with its labels, as it is printed, and its value. */
export type Sample = readonly [name: string, value: number]

export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
  /** Of several processes the largest value is shown, not the sum: each reports the same shared thing. */
  readonly isShared?: true
}

export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

export function textOf(families: readonly Family[]): string {
  const lines: string[] = []
  for (const { name, help, type, samples } of families) {
    if (samples.length === 0) continue
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`)
    for (const [sample, value] of samples) lines.push(`${sample} ${value}`)
  }
  return `${lines.join('\n')}\n`
}

/** Several processes told as one: samples of the same name are added up, or the largest is taken. */
export function sumOf(processes: readonly (readonly Family[])[]): Family[] {
  const sums = new Map<string, { family: Family; samples: Map<string, number> }>()
  for (const family of processes.flat()) {
    const known = sums.get(family.name) ?? { family, samples: new Map<string, number>() }
    sums.set(family.name, known)
    const { samples } = known
    for (const [name, value] of family.samples) {
      const before = samples.get(name) ?? 0
      samples.set(name, family.isShared === true ? Math.max(before, value) : before + value)
    }
  }
  return [...sums.values()].map(({ family, samples }) => ({ ...family, samples: [...samples] }))
}

/** Only the counters: they stay true of a process that is gone. */
export function countsOf(families: readonly Family[]): Family[] {
  return families.filter(({ type }) => type !== 'gauge')
}
