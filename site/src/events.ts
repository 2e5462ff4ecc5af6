/** The messages on the WebSocket as Markdown: those of clients, those of the service, and what holds for all. */
import { anchorOf } from './markdown.ts'
import { exampleBlocks, type GeneratedPage } from './rest.ts'
import { fieldTable, plain, type Schema, schemaName } from './schema.ts'

interface Message {
  readonly name: string
  readonly summary: string
  readonly payload: Schema
  readonly examples: readonly { readonly name: string; readonly payload: unknown }[]
}

export interface AsyncApi {
  readonly info: { readonly description: string }
  readonly channels: Readonly<Record<string, { readonly address: string; readonly description: string }>>
  readonly operations: Readonly<
    Record<
      string,
      { readonly action: string; readonly title: string; readonly messages: readonly { readonly $ref: string }[] }
    >
  >
  readonly components: {
    readonly messages: Readonly<Record<string, Message>>
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>
  }
}

const section = ({ name, summary, payload, examples }: Message): string =>
  [
    `## ${name}`,
    plain(summary),
    fieldTable(payload),
    exampleBlocks(examples.map(({ name: title, payload: value }) => [title, value] as const)),
  ].join('\n\n')

function operationPages({ operations, components }: AsyncApi): readonly (GeneratedPage & { messages: Message[] })[] {
  return Object.values(operations).map(({ action, title, messages: references }) => {
    const messages = references
      .map(({ $ref }) => components.messages[schemaName($ref)])
      .filter((it) => it !== undefined)
    return {
      path: `reference/websocket/${action === 'receive' ? 'clients' : 'service'}`,
      title,
      text: `# ${title}\n\n${messages.map(section).join('\n\n')}\n`,
      messages,
    }
  })
}

export function eventPages(document: AsyncApi): readonly GeneratedPage[] {
  const pages = operationPages(document)
  const tables = pages.map(({ path, title, messages }) => {
    const rows = messages.map(({ name, summary }) => `| [${name}](/${path}.md#${anchorOf(name)}) | ${plain(summary)} |`)
    return `## ${title}\n\n| Message | What it says |\n|---|---|\n${rows.join('\n')}\n`
  })
  const channels = Object.values(document.channels).map(
    ({ address, description }) => `**\`${address}\`** ${plain(description)}\n`,
  )
  const ways = Object.values(document.components.securitySchemes).map(({ description }) => `- ${plain(description)}`)
  const text = `# WebSocket messages

${plain(document.info.description)}

These pages show [asyncapi.json](/generated/asyncapi.json). [The rule book](/protocol.md) says what each message does to a call.
A question mark after a name says that the field may be missing.

${channels.join('\n')}
## How a client authenticates

${ways.join('\n')}

${tables.join('\n')}`
  return [{ path: 'reference/websocket/index', title: 'WebSocket messages', text }, ...pages]
}
