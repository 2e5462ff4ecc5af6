export function findPackages(folder: string, flavour: 'react' | 'plain', version: string): Record<string, string>
export function manifest(wish: {
  name: string
  flavour: 'react' | 'plain'
  version: string
  tarballs: Readonly<Record<string, string>> | undefined
}): string
