import type { Sessions } from '../../ports/sessions.ts'

type Told = Pick<Sessions, 'toldOf' | 'toldExactly' | 'tellAll' | 'setTold'>
type AtOnce = { readonly [M in keyof Told]: (...args: Parameters<Told[M]>) => Awaited<ReturnType<Told[M]>> }

/** Up to which version each call was told, by this process. */
export function createMemoryTold(windowMs: number): AtOnce & { sweep(at: number): void } {
  const told = new Map<string, { readonly version: number; readonly overAt: number | undefined }>()
  let now = 0
  return {
    toldOf: (call) => told.get(call)?.version ?? 0,
    toldExactly: (call) => ({ version: told.get(call)?.version ?? 0, before: 0 }),
    tellAll() {},
    setTold(call, version, isOver) {
      if ((told.get(call)?.version ?? 0) <= version) told.set(call, { version, overAt: isOver ? now : undefined })
    },
    sweep(at) {
      now = at
      for (const [call, { overAt }] of told) if (overAt !== undefined && at - overAt >= windowMs) told.delete(call)
    },
  }
}
