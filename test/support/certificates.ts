/** Certificates for servers on loopback, generated on demand: no tool, and no key in the repository. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A certificate and its key. */
export interface Certificate {
  readonly certPem: string;
  readonly keyPem: string;
  readonly name: string;
  readonly privateKey: KeyObject;
}

const DAY_MS = 86_400_000;

/** Creates a certificate for a name, signed by `issuer` or by itself. It is valid for a day, or has expired. */
export function makeCertificate(
  name: string,
  options: { readonly issuer?: Certificate; readonly authority?: boolean; readonly expired?: boolean } = {},
): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const from = Date.now() - 2 * DAY_MS;
  const until = Date.now() + (options.expired ? -DAY_MS : DAY_MS);
  const extensions = [
    sequence(oid('551d11'), octets(sequence(element(0x82, Buffer.from(name))))),
    ...(options.authority ? [sequence(oid('551d13'), TRUE, octets(sequence(TRUE)))] : []),
  ];
  const body = sequence(
    element(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    commonName(options.issuer?.name ?? name),
    sequence(time(from), time(until)),
    commonName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    element(0xa3, sequence(...extensions)),
  );
  const signature = sign('sha256', body, options.issuer?.privateKey ?? privateKey);
  const der = sequence(body, ECDSA_SHA256, element(0x03, Buffer.concat([Buffer.from([0]), signature])));
  return {
    certPem: `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`,
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    name,
    privateKey,
  };
}

/** A DER element: tag, length, content. */
function element(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]) => element(0x30, Buffer.concat(parts));
const integer = (bytes: Buffer) => element(0x02, bytes);
const octets = (content: Buffer) => element(0x04, content);
const oid = (hex: string) => element(0x06, Buffer.from(hex, 'hex'));
const TRUE = Buffer.from([0x01, 0x01, 0xff]);
const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'));

function commonName(name: string): Buffer {
  return sequence(element(0x31, sequence(oid('550403'), element(0x0c, Buffer.from(name)))));
}

/** As UTCTime: `260302080000Z`. */
function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replace(/\D/g, '').slice(2, 14);
  return element(0x17, Buffer.from(`${digits}Z`));
}
