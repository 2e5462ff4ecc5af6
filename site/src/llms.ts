/** llms.txt: what is where, for programs that read text; and each document as Markdown beside its page. */
import { type Site, withoutFences } from './pages.ts'

/** The first sentence of a document, without its links. A list of contents does not count as a sentence, and neither does a label such as `**Decision.**`. */
export function summaryOf(text: string): string {
  const paragraph = withoutFences(text.replaceAll(/<!--[\s\S]*?-->/g, ''))
    .split(/\n\n+/)
    .find((part) => /^(?!Contents:)[A-Z*[`]/.test(part.trim()))
  const plain = (paragraph ?? '')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/^\s*\*\*\w+\.\*\* /, '')
    .replaceAll('*', '')
    .replaceAll('\n', ' ')
  return /^.*?\.(?= |$)/.exec(plain.trim())?.[0] ?? plain.trim()
}

export function llmsText(site: Site, base: string): string {
  const readme = site.pages.find(({ path }) => path === 'index')
  const sections: readonly (readonly [string, RegExp])[] = [
    ['Guides', /^(index$|guide\/|examples\/)/],
    ['Documents', /^(?!generated\/)[^/]+$/],
    ['Tables printed from the code', /^generated\//],
    ['Packages', /^packages\//],
    ['Decisions', /^decisions\//],
  ]
  const placed = new Set<string>()
  const lists = sections.map(([title, pattern]) => {
    const pages = site.pages.filter(({ path }) => pattern.test(path) && !placed.has(path))
    for (const { path } of pages) placed.add(path)
    const lines = pages.map(
      (page) =>
        `- [${page.path === 'index' ? 'Five minutes' : page.title}](${base}${page.path}.md): ${summaryOf(page.text)}`,
    )
    return `## ${title}\n\n${lines.join('\n')}\n`
  })
  const machines = `## For machines\n\n- [OpenAPI](${base}generated/openapi.json): the REST API and the webhooks.
- [AsyncAPI](${base}generated/asyncapi.json): the messages on the WebSocket.\n`
  return `# Ringwire\n\n> ${summaryOf(readme?.text ?? '')}\n\n${lists.join('\n')}\n${machines}`
}

/** A document with links that lead to the site. */
export function asMarkdown(site: Site, { source, text }: Site['pages'][number], base: string): string {
  return text.replaceAll(/\]\(([^)\s]+)\)/g, (_, href: string) => {
    const target = site.targetOf(source, href).replace(/^\//, base)
    return `](${target.includes('/files/') ? target.replace(/\.md$/, '.html') : target})`
  })
}
