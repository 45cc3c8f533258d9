package org.example.programs;

import java.io.StringReader;
import java.io.StringWriter;
import javax.xml.transform.Templates;
import javax.xml.transform.Transformer;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.xalan.processor.TransformerFactoryImpl;

/** Transforms a document by a style sheet, by Xalan's interpreter. Arguments: seconds. */
public final class Transform {
    private static final String SHEET = String.join("\n",
            "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>",
            "<xsl:key name='by-branch' match='account' use='@branch'/>",
            "<xsl:template match='/'><table>",
            "<xsl:for-each select=\"//account[generate-id() = generate-id(key('by-branch', @branch)[1])]\">",
            "<xsl:sort select='@branch' data-type='number'/>",
            "<tr><td><xsl:value-of select='@branch'/></td>",
            "<td><xsl:value-of select=\"sum(key('by-branch', @branch)/balance)\"/></td>",
            "<xsl:apply-templates select=\"key('by-branch', @branch)\"/></tr>",
            "</xsl:for-each></table></xsl:template>",
            "<xsl:template match='account'><td>",
            "<xsl:choose><xsl:when test='balance &gt; 500'><b><xsl:value-of select=\"concat(owner, ': ', balance)\"/></b>",
            "</xsl:when><xsl:otherwise><xsl:value-of select='translate(owner, \"ow\", \"OW\")'/></xsl:otherwise></xsl:choose>",
            "</td></xsl:template></xsl:stylesheet>");

    private Transform() {}

    public static void main(String[] arguments) throws Exception {
        // The JDK has a changed copy of Xalan, which is found first by the factory's name.
        Templates templates = new TransformerFactoryImpl().newTemplates(new StreamSource(new StringReader(SHEET)));
        String document = document();
        Deadline.repeat(arguments, round -> {
            Transformer transformer = templates.newTransformer();
            StringWriter result = new StringWriter();
            transformer.transform(new StreamSource(new StringReader(document)), new StreamResult(result));
            if (!result.toString().contains("OWner 0")) {
                throw new IllegalStateException("another document");
            }
        });
    }

    private static String document() {
        StringBuilder text = new StringBuilder("<bank>");
        for (int id = 0; id < 2000; id++) {
            text.append("<account branch='").append(id % 50).append("'><owner>owner ").append(id)
                    .append("</owner><balance>").append(id * 7919 % 1000).append("</balance></account>");
        }
        return text.append("</bank>").toString();
    }
}
