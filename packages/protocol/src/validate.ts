import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'

export type Validation<T> = { ok: true; value: T } | { ok: false; field: string; message: string }

/** Compiles a schema once; the check itself allocates nothing while the value is right. */
export function createValidator<T extends TSchema>(schema: T): (value: unknown) => Validation<Static<T>> {
  const compiled = Compile(schema)
  return (value) => {
    if (compiled.Check(value)) return { ok: true, value: value as Static<T> }
    return { ok: false, ...firstProblem(compiled.Errors(value)) }
  }
}

interface Problem {
  keyword: string
  instancePath: string
  message: string
  params: object
}

/** The deepest problem names the field best: of a union, the branch that was meant, not the union itself. */
function firstProblem(problems: readonly Problem[]): { field: string; message: string } {
  let best: Problem | undefined
  for (const problem of problems) {
    if (best === undefined || fieldOf(problem).length > fieldOf(best).length) best = problem
  }
  if (best === undefined) return { field: '', message: 'is invalid' }
  return { field: fieldOf(best), message: best.message }
}

function fieldOf(problem: Problem): string {
  const path = problem.instancePath.slice(1).replaceAll('/', '.')
  if (problem.keyword !== 'required') return path
  const missing = (problem.params as { requiredProperties?: string[] }).requiredProperties?.[0] ?? ''
  return path === '' ? missing : `${path}.${missing}`
}
