import { writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { type Node, type SourceFile, SyntaxKind } from 'typescript/unstable/ast'
import * as is from 'typescript/unstable/ast/is'
import { API } from 'typescript/unstable/async'

/** A small change of a syntax tree that ought to show, as a choice at run time between the node and what is put in its place. */
export interface Mutation {
  /** File, function, operator and node; numbered where a function has several alike. */
  readonly name: string
  readonly file: string
  /** Where the node stands that the choice is made about. */
  readonly from: number
  readonly to: number
  /** What the choice puts in front of the node and behind it; `chosen`: a condition that says whether the mutation is chosen. */
  readonly around: (chosen: string) => readonly [before: string, after: string]
}

/** The syntax trees of these files; the compiler that checks types gives them. */
export async function parse(paths: readonly string[], scratch: string): Promise<readonly SourceFile[]> {
  const config = join(scratch, 'tsconfig.json')
  const compilerOptions = { noLib: true, noResolve: true, types: [], noEmit: true, allowImportingTsExtensions: true }
  await writeFile(config, JSON.stringify({ compilerOptions, files: paths }))
  const api = new API({ cwd: scratch })
  try {
    const [project] = (await api.updateSnapshot({ openProjects: [config] })).getProjects()
    return await Promise.all(
      paths.map(async (path) => {
        const file = await project?.program.getSourceFile(path)
        if (file === undefined) throw new Error(`${path} cannot be parsed`)
        return file
      }),
    )
  } finally {
    await api.close()
  }
}

const textOf = (node: Node) => node.getText().replaceAll(/\s+/g, ' ')

type Declared = ReturnType<typeof declaredIn>[number]
const declaredIn = (file: SourceFile) => file.statements.filter(is.isFunctionDeclaration)

/** The functions of these files that come of the named ones. */
function reached(files: readonly SourceFile[], from: readonly string[]): ReadonlySet<Declared> {
  const byName = new Map(files.flatMap(declaredIn).map((declared) => [declared.name?.text, declared]))
  const found = new Set<Declared>()
  const add = (name: string) => {
    const declared = byName.get(name)
    if (declared === undefined || found.has(declared)) return
    found.add(declared)
    visit(declared, (node) => is.isIdentifier(node) && add(node.text))
  }
  for (const name of from) add(name)
  return found
}

/** Every mutation of what these functions do; types mean nothing at run time and are left alone. */
export function mutationsOf(files: readonly SourceFile[], from: readonly string[]): Mutation[] {
  const found: Mutation[] = []
  const counts = new Map<string, number>()
  for (const declared of reached(files, from)) {
    const file = basename(declared.getSourceFile().fileName)
    visit(declared, (node) => {
      for (const [operator, at, put, shown = at] of changesOf(node)) {
        const base = `${file} ${declared.name?.text}: ${operator}: ${textOf(shown).slice(0, 80)}`
        const count = (counts.get(base) ?? 0) + 1
        counts.set(base, count)
        found.push({ name: count === 1 ? base : `${base} (${count})`, file, ...choiceAt(at, put) })
      }
    })
  }
  return found
}

function visit(node: Node, found: (node: Node) => void): void {
  if (is.isTypeNode(node)) return
  found(node)
  node.forEachChild((child) => visit(child, found))
}

type Choice = Pick<Mutation, 'from' | 'to' | 'around'>

function choiceAt(at: Node, put: string): Choice {
  const [from, to] = [at.getStart(), at.end]
  if (is.isExpressionStatement(at)) return { from, to, around: (chosen) => [`{ if (!${chosen}) `, ' }'] }
  const whole = put.startsWith('...') ? at.parent : expressionOf(at)
  const start = whole.getStart()
  const text = whole.getText()
  const mutated = text.slice(0, from - start) + put + text.slice(to - start)
  return { from: start, to: whole.end, around: (chosen) => [`(${chosen} ? (${mutated}) : `, ')'] }
}

/** The expression that a node is, or belongs to: all of a chain, for `a?.b` ends it and `a.b()` has a `this`. */
function expressionOf(at: Node): Node {
  const { parent } = at
  const isPart =
    (is.isBinaryExpression(parent) && parent.operatorToken === at) ||
    (is.isPropertyAccessExpression(parent) && (parent.name === at || parent.expression === at)) ||
    (is.isElementAccessExpression(parent) && parent.expression === at) ||
    (is.isCallExpression(parent) && parent.expression === at) ||
    (is.isNonNullExpression(parent) && parent.expression === at)
  return isPart ? expressionOf(parent) : at
}

/** The text of a file with a choice at the place of each of these mutations, which lie in one another or apart. */
export function withChoices(
  text: string,
  mutations: readonly Mutation[],
  chosen: (mutation: Mutation) => string,
): string {
  const open: { to: number; after: string }[] = []
  let [out, at] = ['', 0]
  const closeUntil = (end: number) => {
    for (let last = open.at(-1); last !== undefined && last.to <= end; last = open.at(-1)) {
      out += text.slice(at, last.to) + last.after
      at = last.to
      open.pop()
    }
  }
  const isStatement = ({ around }: Mutation) => Number(around('')[0].startsWith('{'))
  const outerFirst = (a: Mutation, b: Mutation) => a.from - b.from || b.to - a.to || isStatement(b) - isStatement(a)
  for (const mutation of mutations.toSorted(outerFirst)) {
    closeUntil(mutation.from)
    const [before, after] = mutation.around(chosen(mutation))
    out += text.slice(at, mutation.from) + before
    at = mutation.from
    open.push({ to: mutation.to, after })
  }
  closeUntil(text.length)
  return out + text.slice(at)
}

/** `at` is replaced; if it says too little by itself, `shown` names it. */
type Change = readonly [operator: string, at: Node, put: string, shown?: Node]

function* changesOf(node: Node): Generator<Change> {
  yield* conditions(node)
  yield* operators(node)
  yield* literals(node)
  yield* parts(node)
  yield* sides(node)
  yield* outcomes(node)
}

/** A condition that always or never holds. */
function* conditions(node: Node): Generator<Change> {
  const condition = is.isIfStatement(node)
    ? node.expression
    : is.isConditionalExpression(node)
      ? node.condition
      : undefined
  if (condition === undefined) return
  yield ['always', condition, 'true']
  yield ['never', condition, 'false']
}

const exchanged: Partial<Record<SyntaxKind, string>> = {
  [SyntaxKind.EqualsEqualsEqualsToken]: '!==',
  [SyntaxKind.ExclamationEqualsEqualsToken]: '===',
  [SyntaxKind.EqualsEqualsToken]: '!=',
  [SyntaxKind.ExclamationEqualsToken]: '==',
  [SyntaxKind.LessThanToken]: '>=',
  [SyntaxKind.LessThanEqualsToken]: '>',
  [SyntaxKind.GreaterThanToken]: '<=',
  [SyntaxKind.GreaterThanEqualsToken]: '<',
  [SyntaxKind.PlusToken]: '-',
  [SyntaxKind.MinusToken]: '+',
}
const moved: Partial<Record<SyntaxKind, string>> = {
  [SyntaxKind.LessThanToken]: '<=',
  [SyntaxKind.LessThanEqualsToken]: '<',
  [SyntaxKind.GreaterThanToken]: '>=',
  [SyntaxKind.GreaterThanEqualsToken]: '>',
}
const joins: readonly SyntaxKind[] = [
  SyntaxKind.AmpersandAmpersandToken,
  SyntaxKind.BarBarToken,
  SyntaxKind.QuestionQuestionToken,
]
const methods: Readonly<Record<string, string>> = { some: 'every', every: 'some', min: 'max', max: 'min' }

/** A whole condition: to turn it round is seen where it is seen that it always and never holds. */
const isWhole = (node: Node) =>
  (is.isIfStatement(node.parent) && node.parent.expression === node) ||
  (is.isConditionalExpression(node.parent) && node.parent.condition === node)

/** One operand gone, a bound moved, a comparison turned round. */
function* operators(node: Node): Generator<Change> {
  if (is.isBinaryExpression(node)) {
    const { left, right, operatorToken } = node
    if (joins.includes(operatorToken.kind)) {
      yield ['only the left', node, left.getText()]
      yield ['only the right', node, right.getText()]
    }
    const bound = moved[operatorToken.kind]
    if (bound !== undefined) yield [bound, operatorToken, bound, node]
    const turned = exchanged[operatorToken.kind]
    if (turned !== undefined && !isWhole(node)) yield [turned, operatorToken, turned, node]
  } else if (is.isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken && !isWhole(node)) {
    yield ['not negated', node, node.operand.getText()]
  } else if (is.isPropertyAccessExpression(node) && is.isCallExpression(node.parent)) {
    const other = methods[node.name.getText()]
    if (other !== undefined && node.parent.expression === node) yield [`${other} instead`, node.name, other, node]
  }
}

const comparisons = /^[!=]==?$/
const isCompared = ({ parent }: Node) =>
  is.isCaseClause(parent) || (is.isBinaryExpression(parent) && comparisons.test(parent.operatorToken.getText()))

function* literals(node: Node): Generator<Change> {
  if (is.isStringLiteral(node) && !isCompared(node)) {
    const other = sideNames[node.text] ?? 'something else'
    yield ['another word', node, `'${other}'`]
  } else if (is.isNumericLiteral(node)) yield ['one more', node, `${Number(node.text) + 1}`]
  else if (node.kind === SyntaxKind.TrueKeyword) yield ['false', node, 'false']
  else if (node.kind === SyntaxKind.FalseKeyword) yield ['true', node, 'true']
}

/** Something left out: an element, a field, a statement, a case. */
function* parts(node: Node): Generator<Change> {
  if (is.isArrayLiteralExpression(node)) {
    for (const element of node.elements) yield ['left out', element, '...[]']
  } else if (is.isObjectLiteralExpression(node)) {
    for (const property of node.properties) yield ['left out', property, '...{}']
  } else if (is.isExpressionStatement(node)) yield ['left out', node, ';']
  else if (is.isCaseClause(node)) yield ['no such case', node.expression, "'something else'"]
}

const sideNames: Readonly<Record<string, string>> = {
  caller: 'callee',
  callee: 'caller',
  callerPlace: 'calleePlace',
  calleePlace: 'callerPlace',
}

function* sides(node: Node): Generator<Change> {
  if (!is.isPropertyAccessExpression(node)) return
  const other = sideNames[node.name.getText()]
  if (other !== undefined) yield ['the other side', node.name, other, node]
}

/** An allowed action does not happen, or an action that is let pass is refused. */
function* outcomes(node: Node): Generator<Change> {
  if (!is.isReturnStatement(node) || node.expression === undefined || !is.isCallExpression(node.expression)) return
  const decided = functionOf(node)
  const decides = decided?.type !== undefined && /^(Decision|Acceptance)$/.test(decided.type.getText())
  const hasCall = decided?.parameters.some(({ name }) => name.getText() === 'call') ?? false
  if (!decides || !hasCall) return
  const isUnchanged = node.expression.expression.getText() === 'unchanged'
  yield isUnchanged
    ? ['refused', node.expression, "refuse('CALL_INVALID_STATE')"]
    : ['unchanged', node.expression, 'unchanged(call)']
}

function functionOf(node: Node) {
  let at: Node | undefined = node
  while (at !== undefined && !is.isFunctionDeclaration(at) && !is.isArrowFunction(at)) at = at.parent
  return at !== undefined && is.isFunctionDeclaration(at) ? at : undefined
}
