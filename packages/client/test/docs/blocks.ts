import { block as blockOf } from '@ringwire/testkit/documents'

/** An unpacked package has no JavaScript: the packages' source is taken, as Bun does. */
export const fromSource = ['bun']

export const block = (language: string, heading: string) => blockOf('docs/client.md', language, `\n## ${heading}\n`)
export const plainPhone = () => blockOf('docs/base-clients.md', 'js', '\n## A whole phone\n')

export async function bundle(file: string, target: 'browser' | 'node'): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [file], target, minify: true, conditions: fromSource })
  return outputs[0]!.text()
}
