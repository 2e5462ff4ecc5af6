/**
 * What the site adds to VitePress's Markdown: links of documents lead to pages, ids of rules lead to the rule book, and
 * Mermaid becomes pictures. The documents themselves stay as they are.
 */
import type { Site } from './pages.ts'

interface Token {
  type: string
  info: string
  content: string
  children: Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

interface State {
  readonly tokens: Token[]
  readonly env: { readonly relativePath?: string }
  readonly Token: new (type: string, tag: string, nesting: -1 | 0 | 1) => Token
}

type Render = (tokens: Token[], index: number, ...more: unknown[]) => string

/** The part of markdown-it that is used here. */
export interface Markdown {
  readonly core: { readonly ruler: { push(name: string, rule: (state: State) => void): void } }
  readonly renderer: { readonly rules: Record<string, Render | undefined> }
}

export interface Options {
  readonly site: Pick<Site, 'pages' | 'targetOf'>
  readonly draw: (mermaid: string) => string
}

const ruleBook = 'docs/protocol.md'

/** Ids that the rule book defines: `**INV3 …` begins a rule. */
export const rulesIn = (text: string): ReadonlySet<string> =>
  new Set(Array.from(text.matchAll(/\*\*([A-Z]+\d+)\b/g), ([, id = '']) => id))

/** A heading's anchor as GitHub makes it, because the documents link to those. */
export const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-')

export function extend(md: Markdown, { site, draw }: Options): void {
  const sources = new Map(site.pages.map(({ path, source }) => [`${path}.md`, source]))
  const rules = rulesIn(site.pages.find(({ source }) => source === ruleBook)?.text ?? '')
  md.core.ruler.push('ringwire', (state) => {
    const source = sources.get(state.env.relativePath ?? '')
    if (source !== undefined) leadToPages(state, source, site)
    if (source === ruleBook) nameRules(state, rules)
    linkRules(state, rules)
  })
  keepBraces(md)
  keepAngles(md)
  drawDiagrams(md, draw)
}

function leadToPages({ tokens }: State, source: string, site: Options['site']): void {
  for (const token of tokens.flatMap(({ children }) => children ?? [])) {
    const name = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : undefined
    const target = name === undefined ? null : token.attrGet(name)
    if (name !== undefined && target !== null) token.attrSet(name, site.targetOf(source, target))
  }
}

/** The first bold text that begins with a rule's id gets the id as its anchor. */
function nameRules({ tokens }: State, rules: ReadonlySet<string>): void {
  const left = new Set(rules)
  for (const { children } of tokens) {
    children?.forEach((token, index) => {
      const id = /^[A-Z]+\d+\b/.exec(children[index + 1]?.content ?? '')?.[0]
      if (token.type === 'strong_open' && id !== undefined && left.delete(id)) token.attrSet('id', id)
    })
  }
}

/** `[INV3]` in a text becomes a link, except in headings and in other links. */
function linkRules(state: State, rules: ReadonlySet<string>): void {
  state.tokens.forEach((token, index) => {
    if (token.children === null || state.tokens[index - 1]?.type === 'heading_open') return
    let depth = 0
    token.children = token.children.flatMap((child) => {
      if (child.type === 'link_open') depth++
      if (child.type === 'link_close') depth--
      return child.type === 'text' && depth === 0 ? split(state, child, rules) : [child]
    })
  })
}

function split(state: State, token: Token, rules: ReadonlySet<string>): Token[] {
  const textOf = (content: string) => Object.assign(new state.Token('text', '', 0), { content })
  return token.content
    .split(/(\[[A-Z]+\d+\])/)
    .filter((part) => part !== '')
    .flatMap((part) => {
      const id = /^\[([A-Z]+\d+)\]$/.exec(part)?.[1]
      if (id === undefined || !rules.has(id)) return [textOf(part)]
      const open = new state.Token('link_open', 'a', 1)
      open.attrSet('href', `/protocol.md#${id}`)
      return [open, textOf(part), new state.Token('link_close', 'a', -1)]
    })
}

/** VitePress compiles pages with Vue, which would take `{{ … }}` of a text for code. */
function keepBraces({ renderer }: Markdown): void {
  for (const name of ['text', 'code_inline']) {
    const render = renderer.rules[name]
    renderer.rules[name] = (...args) => (render?.(...args) ?? '').replaceAll('{{', '&#123;&#123;')
  }
}

/** Of HTML the documents have line breaks and comments. Everything else that looks like a tag, such as `<token>`, is text. */
function keepAngles({ renderer }: Markdown): void {
  for (const name of ['html_inline', 'html_block']) {
    const render = renderer.rules[name]
    renderer.rules[name] = (tokens, index, ...more) => {
      const content = tokens[index]?.content ?? ''
      if (content.startsWith('<!--')) return ''
      if (!/^<(?!br>)/.test(content)) return render?.(tokens, index, ...more) ?? ''
      return content.replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;')
    }
  }
}

function drawDiagrams({ renderer }: Markdown, draw: Options['draw']): void {
  const render = renderer.rules.fence
  renderer.rules.fence = (tokens, index, ...more) => {
    const token = tokens[index]
    if (token?.info.trim() !== 'mermaid') return render?.(tokens, index, ...more) ?? ''
    return `<figure class="diagram" v-pre>${draw(token.content)}</figure>\n`
  }
}

/** A drawing without its style sheet, which would load a font from another host; theme/style.css has the rest of it. */
export const withoutStyle = (svg: string): string => svg.replaceAll(/<style>[\s\S]*?<\/style>/g, '')
